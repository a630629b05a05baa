/** `import text from "x.proto" with { type: "text" }` */
declare module "*.proto" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: this is how Bun gives the text of a file
  export default text;
}
