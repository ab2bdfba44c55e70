package dd

import (
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	Files(t, "testdata/*.txt", func(*testing.T) func(*Block) string {
		calls := 0
		return func(b *Block) string {
			calls++
			switch b.Cmd {
			case "echo":
				return strings.Join(append(b.Words, b.Input...), "\n")
			case "add":
				return strings.Repeat("I", b.Int("a", 0)+b.Int("b", 1))
			case "calls":
				return strings.Repeat("I", calls)
			}
			return "unknown command " + b.Cmd
		}
	})
}
