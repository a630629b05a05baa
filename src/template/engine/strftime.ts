/** `strftime` of C with the locale C, as Python's datetime calls it: local time, no time zone known. */
import { chargeScan, chargeText } from "./limits.ts";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const DAY = 86_400_000;

/** Day of the year, from 0. */
const yearDay = (now: Date): number =>
  Math.round((Date.UTC(now.getFullYear(), now.getMonth(), now.getDate()) - Date.UTC(now.getFullYear(), 0, 1)) / DAY);

/** ISO 8601: the year and the number of the week. */
function isoWeek(now: Date): { year: number; week: number } {
  const thursday = new Date(Date.UTC(now.getFullYear(), now.getMonth(), now.getDate() + 4 - (now.getDay() || 7)));
  const year = thursday.getUTCFullYear();
  return { year, week: Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / (7 * DAY)) + 1 };
}

/** A number with the width and the padding that its code has by itself. */
type Part = string | { readonly value: number; readonly width: number; readonly pad?: "_" };

const two = (value: number): Part => ({ value, width: 2 });
const hour12 = (now: Date): number => now.getHours() % 12 || 12;

function part(code: string, now: Date): Part | undefined {
  switch (code) {
    case "a":
      return (DAYS[now.getDay()] ?? "").slice(0, 3);
    case "A":
      return DAYS[now.getDay()] ?? "";
    case "b":
    case "h":
      return (MONTHS[now.getMonth()] ?? "").slice(0, 3);
    case "B":
      return MONTHS[now.getMonth()] ?? "";
    case "c":
      return strftime(now, "%a %b %e %H:%M:%S %Y");
    case "C":
      return two(Math.floor(now.getFullYear() / 100));
    case "d":
      return two(now.getDate());
    case "D":
    case "x":
      return strftime(now, "%m/%d/%y");
    case "e":
      return { value: now.getDate(), width: 2, pad: "_" };
    case "f":
      return { value: now.getMilliseconds() * 1000, width: 6 };
    case "F":
      return strftime(now, "%Y-%m-%d");
    case "g":
      return two(isoWeek(now).year % 100);
    case "G":
      return { value: isoWeek(now).year, width: 1 };
    case "H":
      return two(now.getHours());
    case "I":
      return two(hour12(now));
    case "j":
      return { value: yearDay(now) + 1, width: 3 };
    case "k":
      return { value: now.getHours(), width: 2, pad: "_" };
    case "l":
      return { value: hour12(now), width: 2, pad: "_" };
    case "m":
      return two(now.getMonth() + 1);
    case "M":
      return two(now.getMinutes());
    case "n":
      return "\n";
    case "p":
      return now.getHours() < 12 ? "AM" : "PM";
    case "P":
      return now.getHours() < 12 ? "am" : "pm";
    case "r":
      return strftime(now, "%I:%M:%S %p");
    case "R":
      return strftime(now, "%H:%M");
    case "s":
      return { value: Math.floor(now.getTime() / 1000), width: 1 };
    case "S":
      return two(now.getSeconds());
    case "t":
      return "\t";
    case "T":
    case "X":
      return strftime(now, "%H:%M:%S");
    case "u":
      return { value: now.getDay() || 7, width: 1 };
    case "U":
      return two(Math.floor((yearDay(now) + 7 - now.getDay()) / 7));
    case "V":
      return two(isoWeek(now).week);
    case "w":
      return { value: now.getDay(), width: 1 };
    case "W":
      return two(Math.floor((yearDay(now) + 7 - ((now.getDay() + 6) % 7)) / 7));
    case "y":
      return two(now.getFullYear() % 100);
    case "Y":
      return { value: now.getFullYear(), width: 1 };
    // a datetime without a time zone
    case "z":
    case "Z":
      return "";
    case "%":
      return "%";
  }
  return undefined;
}

/** Codes may have the flags and the width of glibc: `%-d`, `%_H`, `%^a`, `%4Y`. Unknown ones stay as they are. */
export function strftime(now: Date, format: string): string {
  chargeScan(format.length * 16);
  let length = 0;
  return format.replace(
    /%([-_0^#]*)(\d{1,3})?([EO]?)([a-zA-Z%])/g,
    (whole, flags: string, width: string | undefined, _, code: string) => {
      // Python knows %f, C does not: it may have neither flags nor a width
      const found = code === "f" && whole !== "%f" ? undefined : part(code, now);
      const text = shaped(found ?? whole, flags, width === undefined ? undefined : Number(width), code);
      length += text.length;
      chargeText(length);
      return text;
    },
  );
}

/** Codes whose letters `#` turns into capitals. */
const SWAPPED = "aAbBh";

function shaped(found: Part, flags: string, width: number | undefined, code: string): string {
  if (code === "z") return "";
  const pad = /[-_0]/.exec([...flags].reverse().join(""))?.[0];
  let text: string;
  if (typeof found === "string") {
    text = found.padStart(width ?? 0, pad === "0" ? "0" : " ");
  } else if (pad === "-") text = String(found.value).padStart(width ?? 0);
  else {
    const filler = (pad ?? found.pad ?? "0") === "_" ? " " : "0";
    text = String(found.value).padStart(width ?? found.width, filler);
  }
  if (code === "P") return text;
  if (flags.includes("^") || (flags.includes("#") && SWAPPED.includes(code))) return text.toUpperCase();
  return flags.includes("#") && code === "p" ? text.toLowerCase() : text;
}
