# LevelDB's own build asks whether the compiler knows clang's thread annotations, and takes gcc's silence for a yes.
# Nothing from the system beside it: no compression, and its own portable checksum is used for what is written only.
set(HAVE_CLANG_THREAD_SAFETY OFF CACHE INTERNAL "")
set(HAVE_CRC32C OFF CACHE INTERNAL "")
set(HAVE_SNAPPY OFF CACHE INTERNAL "")
set(HAVE_TCMALLOC OFF CACHE INTERNAL "")
