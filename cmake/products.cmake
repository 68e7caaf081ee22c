# What a user gets: the command, the run-time library, the compiler module.
file(GLOB main_source CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tools/main/*.cpp)
if(main_source)
  add_executable(tilewright ${main_source})
  target_compile_options(tilewright PRIVATE ${TW_WARNINGS})
  target_link_libraries(tilewright PRIVATE tw_tools)
endif()
