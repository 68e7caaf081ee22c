# The run-time library: the C ABI only, nothing but libc below it. The archive is for programs that link everything
# themselves.
target_compile_definitions(tw_runtime_abi PRIVATE TW_VERSION_TEXT="${PROJECT_VERSION}")
set(runtime_objects $<TARGET_OBJECTS:tw_runtime> $<TARGET_OBJECTS:tw_runtime_abi>)
# CUDA devices belong to it where the packages of the whole build are there: the driver is opened at run time, so that
# the library still needs nothing but libc.
if(NOT TILEWRIGHT_RUNTIME_ONLY)
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/runtime/cuda/*.cpp)
  add_library(tw_runtime_cuda_alone OBJECT ${cuda_sources} ${PROJECT_SOURCE_DIR}/src/base/diagnostic.cpp)
  set_target_properties(tw_runtime_cuda_alone PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(tw_runtime_cuda_alone PRIVATE ${TW_WARNINGS})
  target_include_directories(tw_runtime_cuda_alone PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(tw_runtime_cuda_alone PRIVATE fmt::fmt-header-only)
  set(cuda_objects $<TARGET_OBJECTS:tw_runtime_cuda_alone>)
endif()
add_library(tilewright_runtime SHARED ${runtime_objects} ${cuda_objects})
target_link_options(tilewright_runtime PRIVATE -static-libstdc++ -static-libgcc -Wl,-Bsymbolic
                    -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/runtime/abi/exports.map)
set_target_properties(tilewright_runtime PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 1
                      LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/runtime/abi/exports.map)
add_library(tilewright_runtime_static STATIC ${runtime_objects} ${cuda_objects})
set_target_properties(tilewright_runtime_static PROPERTIES OUTPUT_NAME tilewright_runtime)
foreach(name runtime runtime_static)
  set(library tilewright_${name})
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(${library} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  add_library(tilewright::${name} ALIAS ${library})
endforeach()

# The whole library: the same C ABI with the compiler behind it. LLVM stays in the module, which it opens when needed.
if(TARGET tw_driver_abi AND TILEWRIGHT_COMPILER)
  add_library(tilewright_library SHARED ${runtime_objects} $<TARGET_OBJECTS:tw_driver_abi>
              $<TARGET_OBJECTS:tw_runtime_cuda>)
  target_link_libraries(tilewright_library PRIVATE tw_driver)
  target_link_options(tilewright_library PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,--gc-sections
                      -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/driver/abi/exports.map)
  set_target_properties(tilewright_library PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/driver/abi/exports.map)
  set_target_properties(tilewright_library PROPERTIES OUTPUT_NAME tilewright VERSION ${PROJECT_VERSION} SOVERSION 1
                        LINKER_LANGUAGE CXX EXPORT_NAME compiler)
  target_include_directories(tilewright_library INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  add_library(tilewright::compiler ALIAS tilewright_library)
  add_dependencies(tilewright_library tilewright-jit)
endif()
