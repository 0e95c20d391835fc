/** Whether a certificate stands. */
import type { Client } from "../client/client.js";
import { NotValid } from "../errors.js";

/** What the service says of a certificate. */
export type CertificateStatus = Awaited<ReturnType<Client["certificates"]["verify"]>>;

/** Ask the service how a certificate stands now, or stood at a moment; needs no key. Throws: NotValid (revoked,
 * expired, not_yet_valid) unless it is in force; NotFound for an unknown serial number. */
export async function checkCertificate(client: Client, serial: string, at?: Date): Promise<CertificateStatus> {
  const query = at === undefined ? {} : { at: at.toISOString() };
  const found = await client.certificates.verify(serial, query);
  const standing = found.at?.standing ?? found.status;
  if (standing !== "valid" && standing !== "active") throw new NotValid(standing);
  return found;
}
