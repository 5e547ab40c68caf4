# End-to-end tests over shim, fabric and analyzer together.
find_program(PYTHON3 python3 REQUIRED)

function(commtrace_e2e name)
  add_test(NAME e2e.${name} COMMAND ${PYTHON3} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/e2e/test_${name}.py ${ARGN})
  set_tests_properties(e2e.${name} PROPERTIES LABELS e2e TIMEOUT 300
    RUN_SERIAL TRUE ENVIRONMENT
    "BUILD=${CMAKE_BINARY_DIR};ASAN_OPTIONS=verify_asan_link_order=0")
endfunction()

commtrace_e2e(sequence)
commtrace_e2e(run)
commtrace_e2e(graphs)
if(NOT COMMTRACE_SANITIZE) # they measure time
  commtrace_e2e(fit)
  commtrace_e2e(layouts)
endif()

add_test(NAME fuzz.mutate COMMAND ${PYTHON3} -B
  ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/mutate.py 1 100)
set_tests_properties(fuzz.mutate PROPERTIES LABELS fuzz TIMEOUT 300
  ENVIRONMENT BUILD=${CMAKE_BINARY_DIR})
