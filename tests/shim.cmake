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
add_shim_bench(hook shim_fake_nccl ${SQLITE3_STATIC} Threads::Threads m)
add_shim_bench(dlsym -Wl,--no-as-needed shim_fake_nccl ${CMAKE_DL_LIBS})
add_shim_bench(threads shim_fake_nccl ${SQLITE3_STATIC} Threads::Threads m)
foreach(name hook threads)
  target_include_directories(bench_${name} SYSTEM PRIVATE ${SQLITE3_INCLUDE})
endforeach()
add_shim_bench(startup)
add_shim_bench(writer commtrace_shim)
add_shim_bench(profiler fabric_jobs ${SQLITE3_STATIC} Threads::Threads m
  ${CMAKE_DL_LIBS})
target_include_directories(bench_profiler SYSTEM PRIVATE ${SQLITE3_INCLUDE})
target_compile_definitions(bench_profiler PRIVATE
  BENCH_MACHINE="${CMAKE_CURRENT_LIST_DIR}/fabric/machines/fast.fabric")
add_shim_bench(bytes_per_op commtrace_shim)
add_shim_bench(nccl_log commtrace_shim)
add_shim_bench(topology commtrace_shim fabric_common)

# Unit tests: linked with the recorder's objects, so they run sanitised too.
find_path(CMOCKA_INCLUDE cmocka.h REQUIRED)
find_library(CMOCKA_LIBRARY cmocka REQUIRED)
function(add_shim_unit name)
  add_executable(unit_shim_${name}
    ${CMAKE_CURRENT_LIST_DIR}/unit/shim_${name}.c
    ${PROJECT_SOURCE_DIR}/shim/entries.c)
  target_include_directories(unit_shim_${name} SYSTEM PRIVATE
    ${CMOCKA_INCLUDE})
  target_link_libraries(unit_shim_${name} PRIVATE
    commtrace_shim -Wl,--no-as-needed shim_fake_nccl -Wl,--as-needed
    ${CMOCKA_LIBRARY})
  add_test(NAME unit.shim_${name} COMMAND unit_shim_${name})
  set_tests_properties(unit.shim_${name} PROPERTIES LABELS unit
    SKIP_RETURN_CODE 77)
endfunction()
foreach(name capture comm config identity nccl_settings nics profiler publish
        rescue ring soak told trace views)
  add_shim_unit(${name})
endforeach()

find_program(VALGRIND valgrind)
if(VALGRIND AND NOT COMMTRACE_SANITIZE)
  add_test(NAME unit.shim_publish_valgrind COMMAND
    ${VALGRIND} -q --error-exitcode=99 $<TARGET_FILE:unit_shim_publish>)
  set_tests_properties(unit.shim_publish_valgrind PROPERTIES LABELS unit
    ENVIRONMENT RUNS=20)
endif()

# NCCL's log: facts against what was counted by other means.
add_executable(nccl_log_dump ${CMAKE_CURRENT_LIST_DIR}/unit/nccl_log_dump.c)
target_link_libraries(nccl_log_dump PRIVATE commtrace_shim)
add_test(NAME unit.nccl_log COMMAND
  ${CMAKE_CURRENT_LIST_DIR}/unit/nccl_log.sh $<TARGET_FILE:nccl_log_dump>
  ${CMAKE_CURRENT_LIST_DIR}/unit/nccl_logs
  ${PROJECT_SOURCE_DIR}/../shared/data/nccl_debug)
set_tests_properties(unit.nccl_log PROPERTIES LABELS unit)
add_executable(unit_nccl_log_calls
  ${CMAKE_CURRENT_LIST_DIR}/unit/nccl_log_calls.c)
target_include_directories(unit_nccl_log_calls SYSTEM PRIVATE ${CMOCKA_INCLUDE})
target_link_libraries(unit_nccl_log_calls PRIVATE
  commtrace_shim ${CMOCKA_LIBRARY})
add_test(NAME unit.nccl_log_calls COMMAND unit_nccl_log_calls)
set_tests_properties(unit.nccl_log_calls PROPERTIES LABELS unit)
add_executable(fuzz_nccl_log ${CMAKE_CURRENT_LIST_DIR}/fuzz/nccl_log.c)
target_link_libraries(fuzz_nccl_log PRIVATE commtrace_shim)
file(GLOB nccl_logs CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_LIST_DIR}/unit/nccl_logs/*.log)
add_test(NAME unit.nccl_log_fuzz COMMAND fuzz_nccl_log 1 500 ${nccl_logs})
set_tests_properties(unit.nccl_log_fuzz PROPERTIES LABELS unit)

target_link_options(unit_shim_profiler PRIVATE -Wl,--wrap=calloc)

# What only the library as it is shipped can show.
if(NOT COMMTRACE_SANITIZE)
  add_shim_unit(purity)
  add_test(NAME unit.shim_exports COMMAND
    ${CMAKE_CURRENT_LIST_DIR}/unit/shim_exports.sh
    $<TARGET_FILE:commtrace_so> ${CMAKE_C_COMPILER}
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/shim)
  set_tests_properties(unit.shim_exports
    PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
endif()

# Hostile processes and places: the library in front of foreign programs.
find_program(PYTHON3 python3 REQUIRED)
set(hostile ${CMAKE_CURRENT_LIST_DIR}/hostile)
file(GLOB hostile_ways CONFIGURE_DEPENDS ${hostile}/ways_*.c)
add_executable(hostile_process ${hostile}/process.c ${hostile_ways})
target_link_libraries(hostile_process PRIVATE
  commtrace_flags shim_fake_nccl Threads::Threads ${CMAKE_DL_LIBS})
add_executable(hostile_reload ${hostile}/reload.c)
target_link_libraries(hostile_reload PRIVATE commtrace_flags ${CMAKE_DL_LIBS})
add_library(hostile_module MODULE ${hostile}/module.c)
target_link_libraries(hostile_module PRIVATE commtrace_flags shim_fake_nccl)
add_executable(hostile_odd ${hostile}/odd.c)
target_link_libraries(hostile_odd PRIVATE fabric_jobs)
add_library(hostile_tool MODULE ${hostile}/tool.c)
target_link_libraries(hostile_tool PRIVATE commtrace_flags ${CMAKE_DL_LIBS})

function(add_hostile name)
  add_test(NAME hostile.${name} COMMAND ${ARGN})
  set_tests_properties(hostile.${name} PROPERTIES LABELS hostile TIMEOUT 300
    RUN_SERIAL TRUE ENVIRONMENT BUILD=${CMAKE_BINARY_DIR})
endfunction()
if(NOT COMMTRACE_SANITIZE)
  add_hostile(inert ${hostile}/inert.sh $<TARGET_FILE:commtrace_so>)
  foreach(name process company places odd)
    add_hostile(${name} ${PYTHON3} -B ${hostile}/${name}.py)
  endforeach()
  add_hostile(kill ${PYTHON3} -B ${hostile}/kill.py)
  add_hostile(unwritable ${PYTHON3} -B ${hostile}/unwritable.py)
endif()

# A job on the fabric, in the sanitised trees as well: the library there is
# built as the program is, and comes before the sanitizer's own.
function(add_record_test name)
  add_test(NAME e2e.${name} COMMAND ${ARGN})
  set_tests_properties(e2e.${name} PROPERTIES LABELS e2e TIMEOUT 300
    RUN_SERIAL TRUE SKIP_RETURN_CODE 77 ENVIRONMENT BUILD=${CMAKE_BINARY_DIR})
endfunction()
add_record_test(record
  ${PYTHON3} -B ${CMAKE_CURRENT_LIST_DIR}/e2e/test_record.py)
add_record_test(nccl_whose
  ${PYTHON3} -B ${CMAKE_CURRENT_LIST_DIR}/e2e/test_nccl_whose.py)
add_record_test(topology
  ${PYTHON3} -B ${CMAKE_CURRENT_LIST_DIR}/e2e/test_topology.py)
add_record_test(life
  ${PYTHON3} -B ${CMAKE_CURRENT_LIST_DIR}/e2e/test_life.py)
if(NOT COMMTRACE_SANITIZE)
  add_record_test(record_valgrind
    ${CMAKE_CURRENT_LIST_DIR}/e2e/test_record_valgrind.sh)
endif()

# Every row of the table of calls, in each way to come to it.
set(e2e ${CMAKE_CURRENT_LIST_DIR}/e2e)
add_library(rows_nccl SHARED ${e2e}/rows_nccl.c)
target_link_libraries(rows_nccl PRIVATE commtrace_flags -Wl,-Bsymbolic)
set_target_properties(rows_nccl PROPERTIES
  OUTPUT_NAME nccl VERSION 2 SOVERSION 2
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/rows_nccl)
add_executable(rows_linked ${e2e}/rows_main.c ${e2e}/rows_calls.c)
target_link_libraries(rows_linked PRIVATE commtrace_flags rows_nccl)
add_library(rows_module MODULE ${e2e}/rows_calls.c)
target_link_libraries(rows_module PRIVATE commtrace_flags rows_nccl)
add_executable(rows_local ${e2e}/rows_main.c)
target_compile_definitions(rows_local PRIVATE ROWS_IN_MODULE)
target_link_libraries(rows_local PRIVATE commtrace_flags ${CMAKE_DL_LIBS})
add_executable(rows_dlsym ${e2e}/rows_main.c ${e2e}/rows_calls.c)
target_compile_definitions(rows_dlsym PRIVATE ROWS_BY_DLSYM)
target_link_libraries(rows_dlsym PRIVATE commtrace_flags ${CMAKE_DL_LIBS})
add_record_test(rows ${PYTHON3} -B ${e2e}/test_rows.py
  $<TARGET_FILE:rows_linked> $<TARGET_FILE:rows_local>
  $<TARGET_FILE:rows_module> $<TARGET_FILE:rows_dlsym>
  $<TARGET_FILE:rows_nccl>)

add_executable(two_copies ${e2e}/two_copies.c)
target_link_libraries(two_copies PRIVATE
  commtrace_flags Threads::Threads ${CMAKE_DL_LIBS})
add_record_test(two_copies
  ${PYTHON3} -B ${e2e}/test_two_copies.py $<TARGET_FILE:two_copies>)

# NCCL's log, asked for and not.
add_executable(getenv_job ${e2e}/getenv_job.c)
target_link_libraries(getenv_job PRIVATE fabric_jobs Threads::Threads)
if(NOT COMMTRACE_SANITIZE)
  add_library(getenv_tool MODULE ${e2e}/getenv_tool.c)
  target_link_libraries(getenv_tool PRIVATE commtrace_flags ${CMAKE_DL_LIBS})
endif()
add_executable(nccl_log_lives ${e2e}/nccl_log_lives.c)
target_link_libraries(nccl_log_lives PRIVATE fabric_jobs)
add_record_test(nccl_log ${PYTHON3} -B ${e2e}/test_nccl_log.py
  $<TARGET_FILE:getenv_job> $<TARGET_FILE:nccl_log_lives>)

# The same answers in every way to come to a function.
set(ways ${CMAKE_BINARY_DIR}/ways)
function(set_ways target)
  target_link_libraries(${target} PRIVATE commtrace_flags ${CMAKE_DL_LIBS})
  target_link_options(${target} PRIVATE -Wl,--no-as-needed)
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${ways} RUNTIME_OUTPUT_DIRECTORY ${ways})
endfunction()
set(id 100)
foreach(name one two three four five)
  math(EXPR id "${id} + 1")
  add_library(ways_nccl_${name} SHARED ${e2e}/ways_nccl.c)
  set_ways(ways_nccl_${name})
  target_compile_definitions(ways_nccl_${name} PRIVATE ID=${id}
    $<$<STREQUAL:${name},one>:OLD>)
  # One name each: two of one name would be taken for the same by the loader.
  set_target_properties(ways_nccl_${name} PROPERTIES OUTPUT_NAME nccl_${name})
endforeach()
foreach(name one two constructor)
  add_library(ways_${name} MODULE ${e2e}/ways_module.c)
  set_ways(ways_${name})
endforeach()
target_compile_definitions(ways_constructor PRIVATE FROM_CONSTRUCTOR)
target_link_libraries(ways_one PRIVATE ways_nccl_one)
target_link_libraries(ways_two PRIVATE ways_nccl_two)
target_link_libraries(ways_constructor PRIVATE ways_nccl_one)
# What is opened calls nothing; what it needs calls NCCL, and does not name it.
add_library(ways_dependency SHARED ${e2e}/ways_module.c)
add_library(ways_root MODULE ${e2e}/ways_root.c)
set_ways(ways_dependency)
set_ways(ways_root)
target_link_libraries(ways_root PRIVATE ways_dependency ways_nccl_three)
foreach(name tool malloc)
  add_library(ways_${name} MODULE ${e2e}/ways_${name}.c)
  set_ways(ways_${name})
endforeach()
target_compile_options(ways_malloc PRIVATE -fno-builtin)
foreach(name main linked)
  add_executable(ways_${name} ${e2e}/ways_main.c)
  set_ways(ways_${name})
  target_link_libraries(ways_${name} PRIVATE Threads::Threads)
endforeach()
target_compile_definitions(ways_linked PRIVATE LINKED)
target_link_libraries(ways_linked PRIVATE ways_nccl_one)
if(NOT COMMTRACE_SANITIZE) # whose runtime comes with the program alone
  add_record_test(ways ${PYTHON3} -B ${e2e}/test_ways.py ${ways})
endif()
