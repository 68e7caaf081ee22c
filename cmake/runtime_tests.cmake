# Objects as a compiler would emit them, for the tests of the object loader and of execution.
foreach(kernel add_kernel writable_kernel outside_kernel)
  add_library(tw_test_${kernel} OBJECT ${PROJECT_SOURCE_DIR}/tests/runtime/objects/${kernel}.c)
  target_include_directories(tw_test_${kernel} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(tw_test_${kernel} PRIVATE -O2 -g -fPIC -fno-sanitize=all -fno-stack-protector -fno-builtin)
  string(TOUPPER ${kernel} upper)
  target_compile_definitions(runtime_test PRIVATE TW_${upper}="$<TARGET_OBJECTS:tw_test_${kernel}>")
  add_dependencies(runtime_test tw_test_${kernel})
endforeach()
