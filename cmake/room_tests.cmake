# One test binary per room; a folder without tests is skipped.
foreach(room base layout ir lang target interp analysis transform plan/cpu plan/gpu runtime runtime/cuda cache driver fuzz kernels measure
             candidate tune bench/record bench/oracle bench/traffic bench/decision bench/report bench dispatch adapters models tools)
  string(REPLACE "/" "_" id ${room})
  tw_room_test(${room} LINKS tw_${id})
endforeach()
if(TILEWRIGHT_COMPILER)
  foreach(room codegen/llvm codegen/cpu codegen/cuda)
    string(REPLACE "/" "_" id ${room})
    tw_room_test(${room} LINKS tw_${id})
  endforeach()
endif()
