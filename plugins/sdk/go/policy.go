// Package policy has what kerf policies in Go share. Write one with the package of its hook: selection, pricing or
// bootstrap. Each call gets an instance of its own, so nothing that a policy keeps in a variable outlives it.
package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// UnknownPrice is the price of an offering that nobody knows.
const UnknownPrice = ^uint32(0)

// About is what a policy says about itself.
type About struct {
	Name    string
	Version string
	Summary string
	// ConfigSchema is a JSON Schema (2020-12); empty when there is nothing to configure.
	ConfigSchema string
	// DefaultConfig is JSON that is used when the NodeClass gives no configuration; empty means {}.
	DefaultConfig string
	// TimeStepS says how often the answer may change with ctx.AsOfUnixS; 0 when the policy does not look at it.
	TimeStepS uint32
}

// ConfigError is what is wrong with a configuration, and where (a JSON Pointer; empty for the whole).
type ConfigError struct{ Path, Message string }

// InvalidConfig is an error that says that the configuration cannot work; its text goes to the NodeClass.
type InvalidConfig string

func (e InvalidConfig) Error() string { return string(e) }

// Unsupported is an error that says that the policy does not do what it was asked for.
type Unsupported string

func (e Unsupported) Error() string { return string(e) }

// Word is the name behind an index into one of the tables of a vocabulary; empty when the index is none.
func Word(table []string, index uint16) string {
	if int(index) < len(table) {
		return table[index]
	}
	return ""
}

// Parse reads a configuration; keys that C does not have are errors and not silence.
func Parse[C any](config string) (C, error) {
	var parsed C
	decoder := json.NewDecoder(strings.NewReader(config))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&parsed); err != nil {
		return parsed, InvalidConfig(err.Error())
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return parsed, InvalidConfig("has something after its end")
	}
	return parsed, nil
}

// Guard runs a policy and turns a panic into an error with its place.
func Guard(work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v%s", cause, place())
		}
	}()
	return work()
}

// place is where the running panic began: the innermost frame that is not Go's own.
func place() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf(" (line %d in %s)", frame.Line, frame.Function)
		}
		if !more {
			return ""
		}
	}
}
