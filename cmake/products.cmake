# What a user gets: the command, the run-time library, the compiler module.
file(GLOB main_source CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tools/main/*.cpp)
if(main_source)
  add_executable(tilewright ${main_source})
  target_compile_options(tilewright PRIVATE ${TW_WARNINGS})
  target_compile_definitions(tilewright PRIVATE TILEWRIGHT_VERSION="${PROJECT_VERSION}")
  target_link_libraries(tilewright PRIVATE tw_tools)
  if(TARGET tw_tools_compiler)
    target_compile_definitions(tilewright PRIVATE TILEWRIGHT_HAVE_COMPILER)
    target_link_libraries(tilewright PRIVATE tw_tools_compiler)
  endif()
endif()

# The one binary that links LLVM. Everything but one symbol is hidden, so that another LLVM in the process is not disturbed.
if(TILEWRIGHT_COMPILER)
  add_library(tilewright-jit MODULE ${PROJECT_SOURCE_DIR}/src/codegen/jit/jit.cpp)
  target_compile_options(tilewright-jit PRIVATE ${TW_WARNINGS})
  target_link_libraries(tilewright-jit PRIVATE tw_codegen_cpu tw_codegen_cuda)
  target_link_options(tilewright-jit PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/codegen/jit/exports.map
                      -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,--gc-sections $<$<CONFIG:Release>:-s>)
  if(TARGET tilewright)
    add_dependencies(tilewright tilewright-jit)
  endif()
endif()

# Candidates that cheat, for `tilewright selftest --cheats`; installed beside the command.
add_library(cheats_candidate MODULE ${PROJECT_SOURCE_DIR}/src/tools/selftest/cheats.c)
target_include_directories(cheats_candidate PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_options(cheats_candidate PRIVATE -O1 -D_GNU_SOURCE)
target_link_libraries(cheats_candidate PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(cheats_candidate PROPERTIES PREFIX "" OUTPUT_NAME cheats LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/tilewright)
if(TARGET tilewright)
  add_dependencies(tilewright cheats_candidate)
endif()
