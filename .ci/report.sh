# Functions of the scripts in this folder, which source it: the headings of parts, and parts that are skipped.

skipped=()

heading() {
  printf '\n==== %s (after %d s) ====\n' "$*" "$SECONDS"
}

skip() {
  printf 'skipped: %s\n' "$*"
  skipped+=("$*")
}
