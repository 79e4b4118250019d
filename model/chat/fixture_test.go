package chat_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/moerack/moerack/model/chat"
)

const modelDir = "../../test/models/tokenizer"

// TestFixtures compares with what transformers rendered from the test tokenizer's template (test/models/recipe). That the texts
// become the right ids is tested in model/token, with the same file.
func TestFixtures(t *testing.T) {
	data, err := os.ReadFile("../../test/models/fixtures/chat_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var fx struct {
		Cases []struct {
			Name                string          `json:"name"`
			Messages            json.RawMessage `json:"messages"`
			AddGenerationPrompt bool            `json:"add_generation_prompt"`
			Rendered            string          `json:"rendered"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(data, &fx); err != nil {
		t.Fatal(err)
	}
	if len(fx.Cases) < 9 {
		t.Fatalf("fixture has only %d cases", len(fx.Cases))
	}
	tpl, err := chat.Load(modelDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range fx.Cases {
		t.Run(c.Name, func(t *testing.T) {
			messages, err := chat.ParseMessages(c.Messages)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tpl.Render(messages, chat.Options{AddGenerationPrompt: c.AddGenerationPrompt})
			if err != nil || got != c.Rendered {
				t.Errorf("Render = %q, %v, want %q", got, err, c.Rendered)
			}
		})
	}
}
