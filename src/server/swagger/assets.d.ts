declare module "swagger-ui-dist/swagger-ui-bundle.js" {
  const path: string;
  // biome-ignore lint/style/noDefaultExport: what an import with { type: "file" } gives
  export default path;
}
declare module "swagger-ui-dist/swagger-ui.css" {
  const path: string;
  // biome-ignore lint/style/noDefaultExport: what an import with { type: "file" } gives
  export default path;
}
