# End-to-end tests over shim, fabric and analyzer together.
find_program(PYTHON3 python3 REQUIRED)

function(commtrace_e2e name)
  add_test(NAME e2e.${name} COMMAND ${PYTHON3} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/e2e/test_${name}.py ${ARGN})
  set_tests_properties(e2e.${name} PROPERTIES LABELS e2e TIMEOUT 300
    RUN_SERIAL TRUE ENVIRONMENT BUILD=${CMAKE_BINARY_DIR})
endfunction()

commtrace_e2e(sequence)
commtrace_e2e(run)
commtrace_e2e(graphs)
commtrace_e2e(early)
commtrace_e2e(tuning)
commtrace_e2e(digest $<TARGET_FILE:tracegen>)
commtrace_e2e(claims)
if(NOT COMMTRACE_SANITIZE) # plugins and Python come without its runtime
  commtrace_e2e(profiler_host)
  commtrace_e2e(fabric_log)
  commtrace_e2e(profiler)
  commtrace_e2e(static)
endif()
if(NOT COMMTRACE_SANITIZE) # they measure time
  commtrace_e2e(fit)
  commtrace_e2e(links)
  commtrace_e2e(layouts)
  commtrace_e2e(straggler)
  commtrace_e2e(clocks)
endif()

# Programs that probe for names; not linked, linked, and a module that is.
add_executable(probe e2e/probe.c)
add_executable(probe_linked e2e/probe.c)
add_library(probe_module MODULE e2e/probe.c)
foreach(client probe probe_linked probe_module)
  target_link_libraries(${client} PRIVATE commtrace_flags ${CMAKE_DL_LIBS})
endforeach()
target_compile_definitions(probe_linked PRIVATE PROBE_LINKED)
target_compile_definitions(probe_module PRIVATE PROBE_MODULE)
target_link_libraries(probe_linked PRIVATE fabric_nccl)
target_link_libraries(probe_module PRIVATE -Wl,--no-as-needed fabric_nccl)
target_link_options(probe_linked PRIVATE -Wl,--enable-new-dtags)
target_link_options(probe_module PRIVATE -Wl,--enable-new-dtags)

add_executable(oldest e2e/oldest.c)
target_link_libraries(oldest PRIVATE jobs_common)
if(NOT COMMTRACE_SANITIZE) # whose runtime has a dlsym of its own
  commtrace_e2e(probe $<TARGET_FILE:probe> $<TARGET_FILE:probe_linked>
    $<TARGET_FILE:probe_module> $<TARGET_FILE:oldest>)
endif()

foreach(name tracegen tracegen_jobs steps_any)
  add_test(NAME e2e.${name} COMMAND ${PYTHON3} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/e2e/test_${name}.py)
  set_tests_properties(e2e.${name} PROPERTIES LABELS e2e TIMEOUT 300
    ENVIRONMENT BUILD=${CMAKE_BINARY_DIR})
endforeach()

add_test(NAME fuzz.mutate COMMAND ${PYTHON3} -B
  ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/mutate.py 1 100)
set_tests_properties(fuzz.mutate PROPERTIES LABELS fuzz TIMEOUT 300
  ENVIRONMENT BUILD=${CMAKE_BINARY_DIR})
