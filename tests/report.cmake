# Reports: the output layer, sections on jobs built by hand, the command line.
foreach(name report_out report_job)
  add_executable(${name} ${CMAKE_CURRENT_LIST_DIR}/unit/${name}.c)
  target_include_directories(${name} PRIVATE ${CMOCKA_INCLUDE})
  target_link_libraries(${name} PRIVATE commtrace_report ${CMOCKA_LIBRARY})
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 120)
endforeach()
