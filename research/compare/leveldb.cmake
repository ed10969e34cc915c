# LevelDB's build detects the thread annotations of clang incorrectly with gcc, so they are disabled.
# No libraries of the system: no compression, and the portable checksum, which only writes use.
set(HAVE_CLANG_THREAD_SAFETY OFF CACHE INTERNAL "")
set(HAVE_CRC32C OFF CACHE INTERNAL "")
set(HAVE_SNAPPY OFF CACHE INTERNAL "")
set(HAVE_TCMALLOC OFF CACHE INTERNAL "")
