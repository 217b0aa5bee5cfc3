package cart

import (
	"os"
	"testing"
	"time"
)

func TestPasses(t *testing.T) {}

func TestFails(t *testing.T) {
	if sum := 1 + 1; sum != 3 {
		t.Errorf("sum is %d, want 3", sum)
	}
}

func TestIsSkipped(t *testing.T) {
	t.Skip("not today")
}

func TestMisbehaves(t *testing.T) {
	switch os.Getenv("MISBEHAVE") {
	case "crash":
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour)
	}
}
