# Tests and benchmarks of the recorder.

# An NCCL without content, under the real one's name, in a folder of its own.
add_library(shim_fake_nccl SHARED
  ${CMAKE_CURRENT_LIST_DIR}/unit/shim_fake_nccl.c)
target_include_directories(shim_fake_nccl PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/../shim)
target_link_libraries(shim_fake_nccl PRIVATE commtrace_flags)
set_target_properties(shim_fake_nccl PROPERTIES
  OUTPUT_NAME nccl VERSION 2 SOVERSION 2
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_nccl)

# Benchmarks; tests/bench/run.sh runs them.
function(add_shim_bench name)
  add_executable(bench_${name} ${CMAKE_CURRENT_LIST_DIR}/bench/${name}.c)
  target_link_libraries(bench_${name} PRIVATE commtrace_flags ${ARGN})
  set_target_properties(bench_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endfunction()
add_shim_bench(hook shim_fake_nccl)
add_shim_bench(startup)
add_shim_bench(writer commtrace_shim)
add_shim_bench(bytes_per_op commtrace_shim)
