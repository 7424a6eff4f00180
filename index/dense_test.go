package index

import (
	"testing"

	"sallyport/internal/tool"
)

func meantDocs() []Doc {
	doc := func(up, name, about string) Doc {
		return Doc{ID: tool.ID{Upstream: up, Name: name}, Description: about}
	}
	return []Doc{
		doc("calendar", "delete_event", "Removes an event from the calendar."),
		doc("mail", "send_email", "Sends an email to one or more recipients."),
		doc("shop", "create_refund", "Refunds a payment to the customer."),
		doc("browser", "take_screenshot", "Captures an image of the page."),
		doc("weather", "get_forecast", "Returns the forecast for a city."),
		doc("maps", "get_directions", "Finds the route between two places."),
	}
}

// TestMeaningFinds has queries that share no word with the tool, nor a phrase or synonym of the lexicons.
func TestMeaningFinds(t *testing.T) {
	ix, err := New(meantDocs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	ix.current.Load().phrases = nil
	ix.current.Load().related = nil
	for query, want := range map[string]string{
		"abolish an appointment": "delete_event",
		"reimburse the buyer":    "create_refund",
		"rainy or sunny outside": "get_forecast",
		"a photo of the website": "take_screenshot",
	} {
		res, err := ix.Search(t.Context(), Query{Text: query})
		if err != nil || len(res.Hits) == 0 || res.Hits[0].ID.Name != want {
			t.Errorf("%q: %+v, %v; want %s first", query, res.Hits, err, want)
		}
	}
}

// TestMeaningStaysOut has queries whose words say all, and one in a language without vectors.
func TestMeaningStaysOut(t *testing.T) {
	ix, err := New(meantDocs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for query, want := range map[string]int{"refund payment": 1, "ακύρωση ραντεβού": 0} {
		res, err := ix.Search(t.Context(), Query{Text: query})
		if err != nil || res.Total != want {
			t.Errorf("%q: %+v, %v; want %d", query, res.Hits, err, want)
		}
	}
}
