package engine

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Setting is one field of a Config.
type Setting struct {
	Name string // as on the command line, without dashes
	// Ptr points to the field: *string, *int, *uint64, *float64 or *bool.
	Ptr any
}

// Settings lists the fields of c in the order of their declaration.
func (c *Config) Settings() []Setting {
	v := reflect.ValueOf(c).Elem()
	list := make([]Setting, v.NumField())
	for i := range list {
		list[i] = Setting{Name: v.Type().Field(i).Tag.Get("flag"), Ptr: v.Field(i).Addr().Interface()}
	}
	return list
}

// Text is the setting's value as config files and the command line write it.
func (s Setting) Text() string {
	switch p := s.Ptr.(type) {
	case *string:
		return *p
	case *float64:
		return strconv.FormatFloat(*p, 'g', -1, 64)
	default:
		return fmt.Sprint(reflect.ValueOf(p).Elem().Interface())
	}
}

// Set parses text as Text writes it. The error says what was wanted instead.
func (s Setting) Set(text string) error {
	var err error
	switch p := s.Ptr.(type) {
	case *string:
		*p = text
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("--%s=%s: give a whole number", s.Name, text)
		}
	case *uint64:
		if *p, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("--%s=%s: give a whole number from 0 on", s.Name, text)
		}
	case *float64:
		if *p, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("--%s=%s: give a number", s.Name, text)
		}
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("--%s=%s: give true or false", s.Name, text)
		}
	}
	return nil
}

// Type is what the setting's values are: "text", "count", "number", "true|false".
func (s Setting) Type() string {
	switch s.Ptr.(type) {
	case *int, *uint64:
		return "count"
	case *float64:
		return "number"
	case *bool:
		return "true|false"
	}
	return "text"
}

// String is c as a config file: one "name: value" line per setting, in the order
// of the fields.
func (c Config) String() string {
	var b strings.Builder
	for _, s := range c.Settings() {
		text := s.Text()
		if _, ok := s.Ptr.(*string); ok {
			text = strconv.Quote(text)
		}
		fmt.Fprintf(&b, "%s: %s\n", s.Name, text)
	}
	return b.String()
}
