/** Names of the filters, for the test `filter`: the filters themselves need the tests. */
export const FILTER_NAMES: ReadonlySet<string> = new Set(
  (
    "abs attr batch capitalize center count d default dictsort e escape filesizeformat first float forceescape format groupby " +
    "indent int items join last length list lower map max min pprint random reject rejectattr replace reverse round safe select " +
    "selectattr slice sort string striptags sum title tojson trim truncate unique upper urlencode urlize wordcount wordwrap xmlattr"
  ).split(" "),
);
