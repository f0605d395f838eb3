// Commands that empty views teach. They name this very address, so that they can be pasted as they are.

export const FIRST_MESSAGE = () => `curl ${location.origin}/v1/transactions \\
  -H "Authorization: Bearer $POSTHORN_TOKEN" -H "Content-Type: application/json" \\
  -d '{"changes":[{"op":"put","collection":"orders","id":"1001","body":{"total":"9.90"}}],
       "emits":[{"type":"order-placed","payload":{"order":"1001"}}]}'`;

export const FIRST_DESTINATION = () => `curl ${location.origin}/v1/destinations \\
  -H "Authorization: Bearer $POSTHORN_TOKEN" -H "Content-Type: application/json" \\
  -d '{"name":"shop","kind":"webhook","url":"https://shop.example/hooks","types":["order-*"]}'`;

export const FIRST_DOCUMENT = (collection) => `curl ${location.origin}/v1/transactions \\
  -H "Authorization: Bearer $POSTHORN_TOKEN" -H "Content-Type: application/json" \\
  -d '{"changes":[{"op":"put","collection":"${collection}","id":"1001","body":{"total":"9.90"}}]}'`;
