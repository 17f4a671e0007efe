// The place of the audit's segments, by the settings of this host.
import { type AuditPlace, assertLocked, openAuditPlace } from '../../src/audit/place.ts'
import type { Session } from './open.ts'

/**
 * `url`: another place than the setting's. Throws `ConfigError` if the place is a bucket without object lock; a bucket
 * that is away is no error.
 */
export async function findAuditPlace(
  { config, terminal, lifetime }: Session,
  url: string | undefined = config.auditUrl,
): Promise<AuditPlace> {
  const endpoint = terminal.env['AWS_ENDPOINT_URL_S3'] || terminal.env['AWS_ENDPOINT_URL'] || undefined
  const options = { auditUrl: url, dataDir: config.dataDir, endpoint }
  await assertLocked(options)
  const place = openAuditPlace(options)
  lifetime.onClose('audit segments', () => place.close())
  return place
}
