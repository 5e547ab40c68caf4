# Reports: the output layer, sections on jobs built by hand, the command line.
foreach(name report_out report_job)
  add_executable(${name} ${CMAKE_CURRENT_LIST_DIR}/unit/${name}.c)
  target_include_directories(${name} PRIVATE ${CMOCKA_INCLUDE})
  target_link_libraries(${name} PRIVATE commtrace_report ${CMOCKA_LIBRARY})
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 120)
endforeach()

# doctor: what it reads, and its verdicts on programs made for them.
add_executable(doctor_unit ${CMAKE_CURRENT_LIST_DIR}/unit/doctor.c)
target_include_directories(doctor_unit PRIVATE ${CMOCKA_INCLUDE})
target_link_libraries(doctor_unit PRIVATE commtrace_doctor ${CMOCKA_LIBRARY})
add_test(NAME unit.doctor COMMAND doctor_unit)
set_tests_properties(unit.doctor PROPERTIES LABELS unit TIMEOUT 120)
if(NOT COMMTRACE_SANITIZE) # the recorder is not loaded into foreign programs
  add_test(NAME e2e.doctor COMMAND ${PYTHON3} -B
    ${CMAKE_CURRENT_LIST_DIR}/e2e/test_doctor.py ${CMAKE_C_COMPILER}
    $<TARGET_FILE:probe>)
  set_tests_properties(e2e.doctor PROPERTIES LABELS e2e TIMEOUT 300
    ENVIRONMENT BUILD=${CMAKE_BINARY_DIR})
endif()

find_program(SQLITE3_SHELL sqlite3 REQUIRED)
foreach(name errors help json scale sql golden)
  add_test(NAME e2e.cli_${name} COMMAND sh
    ${CMAKE_CURRENT_LIST_DIR}/e2e/test_cli_${name}.sh
    $<TARGET_FILE:commtrace> $<TARGET_FILE:tracegen>
    ${CMAKE_SOURCE_DIR}/samples/sql)
  set_tests_properties(e2e.cli_${name} PROPERTIES LABELS e2e TIMEOUT 120)
endforeach()

# `ops` of a part of the job beside that of all; the whole job beside the truth
# of what was generated.
foreach(name ops_part match)
  add_test(NAME e2e.${name} COMMAND ${PYTHON3} -B
    ${CMAKE_CURRENT_LIST_DIR}/e2e/test_${name}.py
    $<TARGET_FILE:commtrace> $<TARGET_FILE:tracegen>)
  set_tests_properties(e2e.${name} PROPERTIES LABELS e2e TIMEOUT 300)
endforeach()

# Slow links found and priced, and none where there are none; hangs; the price
# of stragglers.
foreach(name slow_link hangs few_steps)
  add_test(NAME e2e.findings_${name} COMMAND ${PYTHON3} -B
    ${CMAKE_CURRENT_LIST_DIR}/e2e/test_${name}.py
    $<TARGET_FILE:commtrace> $<TARGET_FILE:tracegen>)
  set_tests_properties(e2e.findings_${name} PROPERTIES LABELS e2e TIMEOUT 300)
endforeach()

# What --steps, --ranks, --from and --to choose; what is left of a job.db when
# its writing is ended; ranks whose steps were not found.
foreach(name cli_selection cli_ended cli_stepless)
  add_test(NAME e2e.${name} COMMAND ${PYTHON3} -B
    ${CMAKE_CURRENT_LIST_DIR}/e2e/test_${name}.py
    $<TARGET_FILE:commtrace> $<TARGET_FILE:tracegen>)
  set_tests_properties(e2e.${name} PROPERTIES LABELS e2e TIMEOUT 120)
endforeach()
add_test(NAME e2e.kineto COMMAND ${PYTHON3} -B
  ${CMAKE_CURRENT_LIST_DIR}/e2e/test_kineto.py
  $<TARGET_FILE:commtrace> $<TARGET_FILE:tracegen>)
set_tests_properties(e2e.kineto PROPERTIES LABELS e2e TIMEOUT 120
  SKIP_RETURN_CODE 77)
