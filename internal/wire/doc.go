// Package wire reads and writes the SSH wire types of RFC 4251 section 5, for
// the formats that are made of them: signatures, keys and revocation lists.
//
// A short read fails for good and gives zero values, so that a parser asks once
// at its end. It stops readers that run past what they were given.
package wire
