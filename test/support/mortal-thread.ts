/**
 * A serving thread that a test can kill: it listens on a port of its own, named by a file in `doorsFolder`, and ends at the first
 * connection.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import "../../src/threads/serving-thread.ts";
import { doorsFolder } from "./doors.ts";

const door = Bun.listen({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    open() {
      process.exit(1);
    },
    data() {},
  },
});
writeFileSync(join(doorsFolder, String(door.port)), "");
