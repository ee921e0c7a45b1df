// Command packvocab packs a .tiktoken file into the form that package token embeds.
//
// The files come from the Go module github.com/pkoukk/tiktoken-go-loader v0.0.2 (MIT licence), folder assets,
// which carries OpenAI's published vocabularies (openai/tiktoken, MIT licence) unchanged. A line of such a file
// is a token in base64, a space, and its rank. To make the embedded files again:
//
//	go mod download -json github.com/pkoukk/tiktoken-go-loader@v0.0.2   # prints the folder as Dir
//	go run ./token/internal/packvocab "$Dir/assets/o200k_base.tiktoken" token/vocab/o200k_base.gz
//	go run ./token/internal/packvocab "$Dir/assets/cl100k_base.tiktoken" token/vocab/cl100k_base.gz
//
// The packed form is described at token.unpack. The same input always gives the same bytes.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: packvocab file.tiktoken file.gz")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "packvocab:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	source, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	packed, err := pack(source)
	if err != nil {
		return fmt.Errorf("pack %s: %w", from, err)
	}
	return os.WriteFile(to, packed, 0o644)
}

func pack(source []byte) ([]byte, error) {
	var lengths, text []byte
	for line := range bytes.Lines(source) {
		token, err := parse(bytes.TrimSpace(line), len(lengths))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(lengths)+1, err)
		}
		lengths = append(lengths, byte(len(token)))
		text = append(text, token...)
	}
	var out bytes.Buffer
	gz, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	header := binary.LittleEndian.AppendUint32(nil, uint32(len(lengths)))
	for _, part := range [][]byte{header, lengths, text} {
		if _, err := gz.Write(part); err != nil {
			return nil, err
		}
	}
	if err := gz.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// parse returns the token of a line, which must have the given rank.
func parse(line []byte, want int) ([]byte, error) {
	encoded, number, _ := bytes.Cut(line, []byte(" "))
	rank, err := strconv.Atoi(string(number))
	if err != nil {
		return nil, err
	}
	if rank != want {
		return nil, fmt.Errorf("rank %d, want %d: the packed form has no gaps", rank, want)
	}
	token, err := base64.StdEncoding.AppendDecode(nil, encoded)
	if err != nil {
		return nil, err
	}
	if len(token) == 0 || len(token) > 255 {
		return nil, fmt.Errorf("token of %d bytes, want 1 to 255", len(token))
	}
	return token, nil
}
