# Every package the project uses, found once.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)

find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
add_library(xxHash::xxhash UNKNOWN IMPORTED)
set_target_properties(xxHash::xxhash PROPERTIES IMPORTED_LOCATION ${XXHASH_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${XXHASH_INCLUDE_DIR})

if(TILEWRIGHT_COMPILER)
  find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/llvm)
  llvm_map_components_to_libnames(TW_LLVM_LIBS core support passes transformutils scalaropts targetparser x86codegen x86asmparser x86desc x86info
                                  nvptxcodegen nvptxdesc nvptxinfo mc target)
  add_library(tw_llvm INTERFACE)
  target_include_directories(tw_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
  target_link_libraries(tw_llvm INTERFACE ${TW_LLVM_LIBS})
endif()
