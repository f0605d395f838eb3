package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/posthorn/posthorn/app/cli/client"
	"github.com/posthorn/posthorn/app/regular"
)

// provision sees to it that the appliance has the demo's API token and destination, and returns a client with that token. It does
// nothing twice, so that it can be run after each start.
func provision(ctx context.Context, folder folder, said ready, r *receiver) (*client.Client, error) {
	local := client.Unix(said.Socket)
	defer local.Close()
	api, err := withToken(ctx, folder, said, local)
	if err != nil {
		return nil, err
	}
	if err := withDestination(ctx, folder, local, r); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return api, nil
}

// withToken returns a client with the token of the token file, which it makes anew when it is not accepted.
func withToken(ctx context.Context, folder folder, said ready, local *client.Client) (*client.Client, error) {
	if text, err := regular.Read(folder.token(), maxSmall); err == nil {
		api, err := client.Remote(said.URL, strings.TrimSpace(string(text)))
		if err != nil {
			return nil, err
		}
		if err = api.Do(ctx, http.MethodGet, "/v1/backlog", nil, nil); status(err) != http.StatusUnauthorized {
			return api, err
		}
		api.Close()
	}
	var created struct {
		Token string `json:"token"`
	}
	ask := map[string]string{"name": "demo-" + strings.ToLower(rand.Text()[:8]), "role": "admin"}
	if err := local.Do(ctx, http.MethodPost, "/v1/tokens", ask, &created); err != nil {
		return nil, fmt.Errorf("create API token: %w", err)
	}
	if err := replace(folder.token(), []byte(created.Token+"\n")); err != nil {
		return nil, fmt.Errorf("write API token: %w", err)
	}
	return client.Remote(said.URL, created.Token)
}

// withDestination creates the destination, unless the one that exists leads to this receiver and its secret is known.
func withDestination(ctx context.Context, folder folder, local *client.Client, r *receiver) error {
	const path = "/v1/destinations/" + destinationName
	remembered, err := folder.recall()
	if err != nil {
		return err
	}
	var found struct {
		URL string `json:"url"`
	}
	switch err := local.Do(ctx, http.MethodGet, path, nil, &found); {
	case err == nil && found.URL == r.url() && remembered.Secret != "":
		return nil
	case err == nil:
		if err := local.Do(ctx, http.MethodDelete, path, nil, nil); err != nil {
			return fmt.Errorf("delete destination: %w", err)
		}
	case status(err) != http.StatusNotFound:
		return fmt.Errorf("look for destination: %w", err)
	}
	var created struct {
		Secret string `json:"secret"`
	}
	ask := map[string]any{"name": destinationName, "kind": "webhook", "url": r.url(), "types": []string{"*"}}
	if err := local.Do(ctx, http.MethodPost, "/v1/destinations", ask, &created); err != nil {
		return fmt.Errorf("create destination: %w", err)
	}
	if err := r.sink.SetSecrets(created.Secret); err != nil {
		return err
	}
	return folder.remember(memory{Receiver: r.address(), Secret: created.Secret})
}

// status is the HTTP status of a refusal, or 0.
func status(err error) int {
	problem := new(client.Problem)
	if errors.As(err, &problem) {
		return problem.Status
	}
	return 0
}
