// What a fresh database holds: the schema as an operator gets it. Done once per run; tests clone the result.
import { upgradeSchema } from '../../src/store/schema-upgrade.ts'

/** Brings the empty database at `url` up to date. Closes every connection that it opened. */
export async function prepareTemplate(url: string): Promise<void> {
  await upgradeSchema(url)
}
