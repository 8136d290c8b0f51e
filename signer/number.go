package main

import (
	"errors"
	"strconv"
)

// maxDigits keeps a number within what JSON and YAML readers hold exactly.
const maxDigits = 15

// number is a flag that holds a number in its one spelling, decimal: pflag's own numbers are read as Go
// source has them, where 010 is 8, and a serial that was misread can never be lowered again.
type number int64

func (n *number) String() string { return strconv.FormatInt(int64(*n), 10) }

// Type is the word that help prints behind the flag.
func (n *number) Type() string { return "int" }

func (n *number) Set(text string) error {
	v, err := parseNumber(text)
	if err != nil {
		return err
	}
	*n = number(v)
	return nil
}

// parseNumber takes 0, or 1 to 15 digits that do not start with 0.
func parseNumber(text string) (int64, error) {
	ok := len(text) > 0 && len(text) <= maxDigits && (text == "0" || text[0] != '0')
	for _, r := range text {
		ok = ok && r >= '0' && r <= '9'
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return 0, errors.New("want a decimal number of at most 15 digits, without sign or leading zero")
	}
	return v, nil
}
