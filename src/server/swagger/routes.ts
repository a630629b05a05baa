import { swagger } from "@elysiajs/swagger";
import { Elysia } from "elysia";
import styleFile from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import scriptFile from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import packageJson from "../../../package.json" with { type: "json" };

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Collie API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/swagger/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/swagger/swagger-ui-bundle.js"></script>
<script>
window.ui = SwaggerUIBundle({ url: "/swagger/json", dom_id: "#swagger-ui", validatorUrl: null });
</script>
</body>
</html>
`;

const asset = (file: string, type: string) => () =>
  new Response(Bun.file(file), { headers: { "content-type": type, "cache-control": "public, max-age=86400" } });

/**
 * `/swagger` and `/swagger/json`, drawn from the schemas that validate. The plugin makes the document; its own page loads
 * scripts from a public CDN, so the page and its assets are ours.
 */
export function swaggerRoutes() {
  return new Elysia({ name: "collie-swagger" })
    .get("/swagger", () => new Response(PAGE, { headers: { "content-type": "text/html; charset=utf-8" } }), {
      detail: { hide: true },
    })
    .get("/swagger/swagger-ui-bundle.js", asset(scriptFile, "text/javascript; charset=utf-8"), {
      detail: { hide: true },
    })
    .get("/swagger/swagger-ui.css", asset(styleFile, "text/css; charset=utf-8"), { detail: { hide: true } })
    .use(
      swagger({
        // The plugin's page is registered first and the document after it: on one path the document is what remains.
        path: "/swagger/json",
        specPath: "/swagger/json",
        provider: "swagger-ui",
        documentation: {
          info: {
            title: "Collie",
            description: "Model gateway for self-hosted LLM engines",
            version: packageJson.version,
          },
          // The plugin leaves paths with a wildcard out.
          paths: {
            "/v1/models/{model}": {
              get: {
                tags: ["OpenAI"],
                summary: "One model; its id may hold slashes",
                parameters: [{ name: "model", in: "path", required: true, schema: { type: "string" } }],
                responses: { 200: { description: "The model" }, 404: { description: "No such model" } },
              },
            },
            "/v1/tokenizers/{tokenizer}": {
              get: {
                tags: ["Tokens"],
                summary: "One tokenizer, by its id or name, which may hold slashes",
                parameters: [{ name: "tokenizer", in: "path", required: true, schema: { type: "string" } }],
                responses: { 200: { description: "The tokenizer" }, 404: { description: "No such tokenizer" } },
              },
              delete: {
                tags: ["Tokens"],
                summary: "Remove a tokenizer that was added",
                parameters: [{ name: "tokenizer", in: "path", required: true, schema: { type: "string" } }],
                responses: {
                  200: { description: "It is removed" },
                  400: { description: "It is a model's own" },
                  404: { description: "No such tokenizer" },
                },
              },
            },
            "/v1/tokenizers/{tokenizer}/status": {
              get: {
                tags: ["Tokens"],
                summary: "Whether a tokenizer is loaded: pending, completed or failed",
                parameters: [{ name: "tokenizer", in: "path", required: true, schema: { type: "string" } }],
                responses: { 200: { description: "The status" }, 404: { description: "No such tokenizer" } },
              },
            },
          },
          components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
          security: [{ key: [] }],
        },
      }),
    );
}
