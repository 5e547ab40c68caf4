# Unit tests of what is derived from a job in memory.
add_library(commtrace_jobs STATIC
  ${CMAKE_CURRENT_LIST_DIR}/unit/roles_jobs.c
  ${CMAKE_CURRENT_LIST_DIR}/unit/roles_jobs_play.c
  ${CMAKE_CURRENT_LIST_DIR}/unit/roles_jobs_trace.c
  ${CMAKE_CURRENT_LIST_DIR}/unit/roles_jobs_layout.c)
target_include_directories(commtrace_jobs PUBLIC
  ${CMAKE_CURRENT_LIST_DIR}/unit)
target_link_libraries(commtrace_jobs PUBLIC commtrace_flags commtrace_trace m)

foreach(name model_fit model_inside model_exchange roles_layouts roles_confusing
        pipeline_idle findings_price)
  if(name MATCHES "^(model|roles|pipeline|findings)_")
    set(layer ${CMAKE_MATCH_1})
  endif()
  add_executable(${name} ${CMAKE_CURRENT_LIST_DIR}/unit/${name}.c)
  target_include_directories(${name} PRIVATE ${CMOCKA_INCLUDE})
  target_link_libraries(${name} PRIVATE commtrace_jobs commtrace_${layer}
    ${CMOCKA_LIBRARY})
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 120)
endforeach()

# Findings on traces written by hand or generated.
foreach(name findings_stuck findings_straggler findings_links)
  add_executable(${name} ${CMAKE_CURRENT_LIST_DIR}/unit/${name}.c)
  target_link_libraries(${name} PRIVATE trace_files commtrace_findings)
  target_compile_definitions(${name} PRIVATE
    TRACEGEN="$<TARGET_FILE:tracegen>")
  add_dependencies(${name} tracegen)
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 120)
endforeach()

add_executable(model_nccl ${CMAKE_CURRENT_LIST_DIR}/unit/model_nccl.c)
target_link_libraries(model_nccl PRIVATE trace_files commtrace_model m)
add_test(NAME unit.model_nccl COMMAND model_nccl)
set_tests_properties(unit.model_nccl PROPERTIES LABELS unit TIMEOUT 120)
