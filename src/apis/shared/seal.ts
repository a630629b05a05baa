/**
 * Seals of what a client keeps for us: reasoning that it must not read (`encrypted_content`), or that it may read but not alter
 * (`signature`). Keys come from the gateway's own by HKDF (RFC 5869), one for each tenant and use.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";

export interface Sealer {
  /** Hides a text: `e1.` and base64url of nonce, AES-256-GCM ciphertext and tag. */
  seal(tenant: string, text: string): string;
  /** Signs a text that is shown beside it: `s1.` and base64url of an HMAC-SHA256. */
  sign(tenant: string, text: string): string;
  /**
   * The text that a blob of either kind stands for; `visible`: the text beside it, of which a signature must be. Undefined where the blob
   * is foreign, altered or of another tenant: it is to be ignored, and is no error.
   */
  open(tenant: string, blob: string, visible: string): string | undefined;
}

const NONCE = 12;
const TAG = 16;
const SALT = "collie seal 1";
/** Tenants whose keys are kept. */
const MOST_TENANTS = 1024;

interface Keys {
  readonly seal: Buffer;
  readonly sign: Buffer;
}

/** @param key the gateway's own, of any length; 32 random bytes are best */
export function createSealer(key: Uint8Array): Sealer {
  const known = new Map<string, Keys>();
  const derived = (use: string, tenant: string) => Buffer.from(hkdfSync("sha256", key, SALT, `${use}\0${tenant}`, 32));

  function keysOf(tenant: string): Keys {
    let keys = known.get(tenant);
    if (keys !== undefined) return keys;
    keys = { seal: derived("seal", tenant), sign: derived("sign", tenant) };
    if (known.size >= MOST_TENANTS) known.clear();
    known.set(tenant, keys);
    return keys;
  }

  const mac = (tenant: string, text: string): Buffer => createHmac("sha256", keysOf(tenant).sign).update(text).digest();

  function decrypted(tenant: string, bytes: Buffer): string | undefined {
    if (bytes.length < NONCE + TAG) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", keysOf(tenant).seal, bytes.subarray(0, NONCE));
    decipher.setAuthTag(bytes.subarray(bytes.length - TAG));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE, -TAG)), decipher.final()]).toString("utf8");
    } catch {
      return undefined; // the tag does not fit
    }
  }

  return {
    seal(tenant, text) {
      const nonce = randomBytes(NONCE);
      const cipher = createCipheriv("aes-256-gcm", keysOf(tenant).seal, nonce);
      const hidden = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return `e1.${hidden.toString("base64url")}`;
    },
    sign: (tenant, text) => `s1.${mac(tenant, text).toString("base64url")}`,
    open(tenant, blob, visible) {
      const bytes = Buffer.from(blob.slice(3), "base64url");
      if (blob.startsWith("e1.")) return decrypted(tenant, bytes);
      if (!blob.startsWith("s1.")) return undefined;
      const wanted = mac(tenant, visible);
      return bytes.length === wanted.length && timingSafeEqual(bytes, wanted) ? visible : undefined;
    },
  };
}
