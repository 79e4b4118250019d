package archtest

import (
	"os"
	"testing"
)

// TestRepository is the gate: the source tree has no fault.
func TestRepository(t *testing.T) {
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, file := range tree.Files {
		seen = seen || file.Path == "internal/archtest/repo_test.go"
	}
	if !seen || tree.Module != "github.com/moerack/moerack" {
		t.Fatalf("read module %q with %d Go files, this one not among them: the walk is broken", tree.Module, len(tree.Files))
	}
	for _, fault := range append(CheckImports(tree, table), CheckHouse(tree)...) {
		t.Error(fault)
	}
}

// TestTableIsWellFormed catches rows that can never count.
func TestTableIsWellFormed(t *testing.T) {
	rows := map[string]bool{}
	for _, row := range table.Rows {
		if rows[row.Package] {
			t.Errorf("row %s is there twice; the second never counts", row.Package)
		}
		rows[row.Package] = true
		if row.Why == "" {
			t.Errorf("row %s gives no reason", row.Package)
		}
	}
	owners := map[string]bool{}
	for _, owner := range table.Owners {
		if owners[owner.Import] {
			t.Errorf("owner of %s is there twice; the second never counts", owner.Import)
		}
		owners[owner.Import] = true
		if owner.Why == "" {
			t.Errorf("owner of %s gives no reason", owner.Import)
		}
	}
}
