// Package parquet reads chosen flat columns of a Parquet file as text, row by row, from a file that nobody vouches for.
//
// Promises. Bytes that are not a Parquet file, or a damaged or hostile one, give an error: nothing is believed that a
// file says of its own sizes. Memory is at most one page and one dictionary a column, of 128 MiB each and never larger
// than what the bytes of the file decompress to, and the footer. Types are checked once, by Open, before a row is read.
// An error names the column, never a value.
//
// Refuses. Nested and repeated columns, and types that have no one reading as a number or a word: dates, times, INT96,
// fixed-length bytes. Encryption, compression other than snappy, gzip and zstd, and the deprecated BIT_PACKED levels.
//
// Why not a library. The published readers for Go believe the sizes in a file: they allocate what a page header, a list
// header or a run of an index says, up to gigabytes from a file of some hundred bytes, which no recover catches, and they
// panic on damaged files (github.com/parquet-go/parquet-go issue 537, github.com/apache/arrow issue 43605). The format
// itself is simple where columns are flat. The tests read what parquet-go and other writers wrote.
//
// The format: https://github.com/apache/parquet-format (parquet.thrift, Encodings.md).
package parquet
