# Tests with unmodified PyTorch, each alone, since all of them are whole jobs.
# Those that are registered take minutes; tests/clients/run.sh runs the rest as
# well. Where PyTorch cannot be had they are skipped (77).

add_library(witness MODULE clients/witness.c)
target_link_libraries(witness PRIVATE commtrace_flags ${CMAKE_DL_LIBS})
set_target_properties(witness PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

# commtrace_client(NAME SECONDS COMMAND...)
function(commtrace_client name seconds)
  add_test(NAME clients.${name} COMMAND ${ARGN})
  set_tests_properties(clients.${name} PROPERTIES LABELS clients
    TIMEOUT ${seconds} RUN_SERIAL TRUE SKIP_RETURN_CODE 77
    ENVIRONMENT BUILD=${CMAKE_BINARY_DIR})
endfunction()

add_executable(host_calls clients/host_calls.c)
target_link_libraries(host_calls PRIVATE
  commtrace_flags fabric_nccl ${CMAKE_DL_LIBS})
target_link_options(host_calls PRIVATE -Wl,--enable-new-dtags)

if(NOT COMMTRACE_SANITIZE)
  commtrace_client(real_nccl 300 ${PYTHON3} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/clients/test_real_nccl.py
    $<TARGET_FILE:host_calls> $<TARGET_FILE:probe>)
  commtrace_client(venv 600 ${CMAKE_SOURCE_DIR}/samples/torch/venv.sh
    ${CMAKE_BINARY_DIR}/torch-venv ${CMAKE_BINARY_DIR})
  set_tests_properties(clients.venv PROPERTIES FIXTURES_SETUP clients_venv)
  foreach(test witness two_nccls sample graph megatron)
    set(arguments)
    if(test STREQUAL witness)
      set(arguments ddp parallel3d)
    elseif(test STREQUAL graph)
      set(arguments nccl)
    elseif(test STREQUAL sample)
      set(arguments tp-dp-pp pp-dp-tp)
    endif()
    commtrace_client(${test} 600 ${PYTHON3} -B
      ${CMAKE_CURRENT_SOURCE_DIR}/clients/test_${test}.py ${arguments})
    set_tests_properties(clients.${test} PROPERTIES
      FIXTURES_REQUIRED clients_venv)
  endforeach()
endif()
