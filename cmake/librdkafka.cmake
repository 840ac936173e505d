# A newer librdkafka from a source folder (cmake -DLIBRDKAFKA_SOURCE=DIR), linked statically. Its own configure is
# used: its CMake build needs curl's headers even when told not to before 2.15.
include(ExternalProject)
pkg_check_modules(RDKAFKA_ZLIB REQUIRED zlib)
pkg_check_modules(RDKAFKA_ZSTD libzstd)
if(RDKAFKA_ZSTD_FOUND)
  set(rdkafka_zstd --enable-zstd)
else()
  set(rdkafka_zstd --disable-zstd)
endif()
set(rdkafka_prefix ${CMAKE_BINARY_DIR}/librdkafka)
ExternalProject_Add(librdkafka_build
  DOWNLOAD_COMMAND ${CMAKE_COMMAND} -E copy_directory ${LIBRDKAFKA_SOURCE} <SOURCE_DIR>
  CONFIGURE_COMMAND chmod +x configure COMMAND ./configure --prefix=${rdkafka_prefix} --enable-static --disable-curl
    --disable-gssapi --disable-lz4-ext ${rdkafka_zstd}
  BUILD_COMMAND make libs
  INSTALL_COMMAND make -C src install
  BUILD_IN_SOURCE 1
  BUILD_BYPRODUCTS ${rdkafka_prefix}/lib/librdkafka.a)
file(MAKE_DIRECTORY ${rdkafka_prefix}/include)
set(RDKAFKA_INCLUDE_DIRS ${rdkafka_prefix}/include)
set(RDKAFKA_LINK_LIBRARIES ${rdkafka_prefix}/lib/librdkafka.a ${RDKAFKA_ZLIB_LINK_LIBRARIES} ${RDKAFKA_ZSTD_LINK_LIBRARIES})
