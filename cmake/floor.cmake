# cadans_floor(NAME [LINKS floor...] [LIBRARIES library...] [TEST_LINKS library...])
#
# One static library from src/NAME/**/*.cpp, and one test program from src/NAME/**/*_test.cpp.
# Headers are written #include "NAME/file.h"; each floor is reachable only through a folder of its
# own that holds nothing but a link to it, so an include of a floor that is not in LINKS does not compile.

function(cadans_expose name)
    set(door ${CMAKE_BINARY_DIR}/floors/${name})
    file(MAKE_DIRECTORY ${door})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${door}/${name} SYMBOLIC)
endfunction()

function(cadans_floor name)
    cmake_parse_arguments(ARG "" "" "LINKS;LIBRARIES;TEST_LINKS" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
    set(tests ${sources})
    list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cpp$|/testing/")
    list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
    cadans_expose(${name})

    if(sources)
        add_library(cadans_${name} STATIC ${sources})
        set(scope PUBLIC)
    else()
        add_library(cadans_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(cadans_${name} ${scope} ${CMAKE_BINARY_DIR}/floors/${name})
    list(TRANSFORM ARG_LINKS PREPEND cadans_)
    target_link_libraries(cadans_${name} ${scope} ${ARG_LINKS} ${ARG_LIBRARIES})

    if(CADANS_TESTS AND tests)
        add_executable(${name}_test ${tests})
        target_link_libraries(${name}_test PRIVATE cadans_${name} ${ARG_TEST_LINKS} GTest::gtest GTest::gtest_main)
        gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60 DISCOVERY_MODE PRE_TEST)
    endif()
endfunction()
