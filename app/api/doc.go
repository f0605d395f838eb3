// Package api is the product's HTTP face: routes, the reading of requests, the writing of answers and problems. It holds no rule of its
// own; use cases are in the modules behind it, and each request enters them through the mediator.
//
// Requests are read strictly. The whole body is valid UTF-8 and one JSON value; field names are exact, each there once, none unknown;
// payloads and documents are taken as the bytes that stand there and never pass through a float64. Every refusal is a problem
// (RFC 9457) with a stable code, a sentence, and where there is one a hint; none repeats a value that was received.
//
// Times are RFC 3339 in UTC. A duration that somebody sets is text with its unit, as in posthorn.yaml ("timeout": "15s", wait=10s); one that is
// told is a number of seconds, and its name ends in _seconds. A time to wait that a client's timer takes is in milliseconds, and ends in _ms.
//
// huma routes on net/http and writes the OpenAPI document. Its own reading and checking of bodies, which is neither exact about names nor
// about numbers, is not used, nor its $schema links and its documentation page, which loads from elsewhere.
package api
