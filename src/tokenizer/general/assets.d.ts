/** Tables that a build embeds: the import gives the path to read. */
declare module "*characters.rle" {
  const path: string;
  // biome-ignore lint/style/noDefaultExport: file imports have a default export only
  export default path;
}
declare module "*scripts.rle" {
  const path: string;
  // biome-ignore lint/style/noDefaultExport: file imports have a default export only
  export default path;
}
