# Loading, matching, steps: unit tests, and the benchmark of loading.
add_library(trace_files STATIC
  ${CMAKE_CURRENT_LIST_DIR}/unit/trace_files.c
  ${CMAKE_CURRENT_LIST_DIR}/unit/links_files.c)
target_include_directories(trace_files PUBLIC
  ${CMAKE_CURRENT_LIST_DIR}/unit ${SQLITE3_INCLUDE} ${CMOCKA_INCLUDE})
target_link_libraries(trace_files PUBLIC commtrace_trace ${CMOCKA_LIBRARY})

foreach(name short_ns progress load recover choices clock kernels join links match rotation skew steps usage
        graphs transfer settle stacks pack)
  add_executable(trace_${name} ${CMAKE_CURRENT_LIST_DIR}/unit/trace_${name}.c)
  target_link_libraries(trace_${name} PRIVATE trace_files)
  target_compile_definitions(trace_${name} PRIVATE
    TRACEGEN="$<TARGET_FILE:tracegen>"
    VERSION1_SQL="${CMAKE_CURRENT_LIST_DIR}/unit/trace_version1.sql")
  add_dependencies(trace_${name} tracegen)
  add_test(NAME unit.trace_${name} COMMAND trace_${name})
  set_tests_properties(unit.trace_${name} PROPERTIES LABELS unit TIMEOUT 300)
endforeach()

add_executable(steps_jobs ${CMAKE_CURRENT_LIST_DIR}/unit/steps_jobs.c
  ${CMAKE_CURRENT_LIST_DIR}/unit/steps_random.c)
target_link_libraries(steps_jobs PRIVATE trace_files)
target_compile_definitions(steps_jobs PRIVATE
  TRACEGEN="$<TARGET_FILE:tracegen>")
add_dependencies(steps_jobs tracegen)
add_test(NAME unit.steps_jobs COMMAND steps_jobs)
set_tests_properties(unit.steps_jobs PROPERTIES LABELS unit TIMEOUT 600)

add_executable(bench_report10m ${CMAKE_CURRENT_LIST_DIR}/bench/report10m.c)
target_include_directories(bench_report10m PRIVATE ${SQLITE3_INCLUDE})
target_link_libraries(bench_report10m PRIVATE commtrace_flags ${SQLITE3_STATIC}
  Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(bench_report10m PRIVATE
  TRACEGEN="$<TARGET_FILE:tracegen>" COMMTRACE="$<TARGET_FILE:commtrace>")
target_link_libraries(bench_report10m PRIVATE m)
add_dependencies(bench_report10m tracegen commtrace)
set_target_properties(bench_report10m PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)

add_executable(bench_tracegen ${CMAKE_CURRENT_LIST_DIR}/bench/tracegen.c)
target_include_directories(bench_tracegen PRIVATE ${SQLITE3_INCLUDE})
target_link_libraries(bench_tracegen PRIVATE commtrace_flags ${SQLITE3_STATIC}
  Threads::Threads ${CMAKE_DL_LIBS} m)
target_compile_definitions(bench_tracegen PRIVATE
  TRACEGEN="$<TARGET_FILE:tracegen>")
add_dependencies(bench_tracegen tracegen)
set_target_properties(bench_tracegen PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
