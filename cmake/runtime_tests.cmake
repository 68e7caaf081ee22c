# Objects as a compiler would emit them, for the tests of the object loader and of execution.
foreach(kernel add_kernel writable_kernel outside_kernel)
  add_library(tw_test_${kernel} OBJECT ${PROJECT_SOURCE_DIR}/tests/runtime/objects/${kernel}.c)
  target_include_directories(tw_test_${kernel} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(tw_test_${kernel} PRIVATE -O2 -g -fPIC -fno-sanitize=all -fno-stack-protector -fno-builtin)
  string(TOUPPER ${kernel} upper)
  foreach(test runtime_test runtime_abi_test aot_test)
    target_compile_definitions(${test} PRIVATE TW_${upper}="$<TARGET_OBJECTS:tw_test_${kernel}>")
    add_dependencies(${test} tw_test_${kernel})
  endforeach()
endforeach()

# The public headers, as strict C11 and C++17 programs include them: apart from the project's own flags and standard.
add_library(tw_header_c11 OBJECT ${PROJECT_SOURCE_DIR}/tests/runtime/abi/header_c11.c)
target_compile_options(tw_header_c11 PRIVATE -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wstrict-prototypes -Werror)
add_library(tw_header_cpp17 OBJECT ${PROJECT_SOURCE_DIR}/tests/runtime/abi/header_cpp17.cpp)
set_target_properties(tw_header_cpp17 PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
target_compile_options(tw_header_cpp17 PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -fno-exceptions -fno-rtti -Werror)
foreach(header tw_header_c11 tw_header_cpp17)
  target_include_directories(${header} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(runtime_abi_test PRIVATE $<TARGET_OBJECTS:${header}>)
  add_dependencies(runtime_abi_test ${header})
endforeach()
# Kernels in C++, as strictly; they need exceptions.
add_library(tw_example_cpp17 OBJECT ${PROJECT_SOURCE_DIR}/examples/cpp/matmul_bias_gelu.cpp)
set_target_properties(tw_example_cpp17 PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
target_compile_options(tw_example_cpp17 PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
target_include_directories(tw_example_cpp17 PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_sources(runtime_abi_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/runtime/abi/counting_new.cpp)
target_compile_definitions(runtime_abi_test PRIVATE TW_RUNTIME_LIBRARY="$<TARGET_FILE:tilewright_runtime>")
target_link_libraries(runtime_abi_test PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(runtime_abi_test tilewright_runtime)

target_compile_definitions(aot_test PRIVATE TW_RUNTIME_ARCHIVE="$<TARGET_FILE:tilewright_runtime_static>"
                           TW_SANITIZE_FLAGS="$<$<BOOL:${TILEWRIGHT_SANITIZE}>:-fsanitize=address,undefined>")
add_dependencies(aot_test tilewright_runtime_static)

# The fuzzer's target, replayed over its kept corpus.
target_sources(runtime_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/records_fuzz.cpp)
target_link_libraries(runtime_test PRIVATE tw_cache)

# libtilewright.so by its C ABI.
if(TARGET tilewright_library)
  tw_room_test(driver/abi LINKS tilewright_library)
  target_link_libraries(driver_abi_test PRIVATE ${CMAKE_DL_LIBS})
  target_compile_definitions(driver_abi_test PRIVATE TW_LIBRARY="$<TARGET_FILE:tilewright_library>")
endif()

# A stand-in for the CUDA driver, so that the device's code runs on machines without one.
add_library(tw_fake_cuda SHARED ${PROJECT_SOURCE_DIR}/tests/runtime/cuda/fake_cuda.cpp)
target_include_directories(tw_fake_cuda PRIVATE ${PROJECT_SOURCE_DIR}/tests)
set_target_properties(tw_fake_cuda PROPERTIES NO_SONAME ON LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake)
target_link_options(tw_fake_cuda PRIVATE -Wl,-soname,libcuda.so.1)
target_compile_definitions(runtime_cuda_test PRIVATE TW_FAKE_CUDA="$<TARGET_FILE:tw_fake_cuda>")
target_link_libraries(runtime_cuda_test PRIVATE ${CMAKE_DL_LIBS})
target_sources(runtime_cuda_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/runtime/abi/counting_new.cpp)
target_compile_definitions(bench_test PRIVATE TW_FAKE_CUDA="$<TARGET_FILE:tw_fake_cuda>")
add_dependencies(bench_test tw_fake_cuda)
add_dependencies(runtime_cuda_test tw_fake_cuda)
