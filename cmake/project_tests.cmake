# Outside projects that use Tilewright as a user would: installed (find_package) and as sources (FetchContent).
foreach(way find_package fetch_content)
  add_test(NAME outside_${way}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/project/outside.sh ${way} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(outside_${way} PROPERTIES TIMEOUT 600)
endforeach()

# python/tilewright.py with the compiler; what needs NumPy or PyTorch is skipped where they are not installed. A kernel built
# ahead of time is tested by runtime_abi.
find_program(TW_PYTHON python3)
if(TW_PYTHON AND TARGET tilewright_library)
  add_test(NAME python COMMAND ${TW_PYTHON} ${PROJECT_SOURCE_DIR}/tests/python/tilewright_test.py)
  set_tests_properties(python PROPERTIES TIMEOUT 300 ENVIRONMENT
                       "TILEWRIGHT_LIBRARY=$<TARGET_FILE:tilewright_library>;TW_KERNELS=${PROJECT_SOURCE_DIR}/kernels")
endif()
