# Outside projects that use Tilewright as a user would: installed (find_package) and as sources (FetchContent).
foreach(way find_package fetch_content)
  add_test(NAME project_${way}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/project/outside.sh ${way} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(project_${way} PROPERTIES TIMEOUT 600)
endforeach()
