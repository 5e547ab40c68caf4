# Call sites: programs that call NCCL from known places. Optimised, as programs
# are, and with their lines.
enable_language(CXX)
set(stacks ${CMAKE_CURRENT_LIST_DIR}/stacks)

function(add_stacks_target target)
  target_compile_options(${target} PRIVATE -O2 -g)
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/stacks
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/stacks)
endfunction()

add_executable(stacks_callers ${stacks}/callers.c)
target_compile_definitions(stacks_callers PRIVATE _GNU_SOURCE)
target_link_libraries(stacks_callers PRIVATE
  shim_fake_nccl Threads::Threads ${CMAKE_DL_LIBS})
add_executable(stacks_thrower ${stacks}/thrower.cc)
target_link_libraries(stacks_thrower PRIVATE shim_fake_nccl)
foreach(name callers thrower)
  add_stacks_target(stacks_${name})
  set_target_properties(stacks_${name} PROPERTIES OUTPUT_NAME ${name})
endforeach()
set(count 10)
foreach(name first second)
  math(EXPR count "${count} + 1")
  add_library(stacks_${name} MODULE ${stacks}/module.c)
  target_compile_definitions(stacks_${name} PRIVATE
    NAME=${name} COUNT=${count})
  add_stacks_target(stacks_${name})
  set_target_properties(stacks_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name})
endforeach()
commtrace_e2e(stacks)
