// Makes both schemas in the template, as `schema upgrade` makes them for an operator. This is done once per run; tests
// clone the result.
import { upgradePostgres } from '../../src/queue/postgres.ts'
import { TABLES } from '../../src/store/composition.ts'
import { withQueueOwner } from '../../src/store/queue-pool.ts'
import { upgradeSchema } from '../../src/store/schema-upgrade.ts'

/** Brings the empty database at `url` up to date. Closes every connection that it opened. */
export async function prepareTemplate(url: string): Promise<void> {
  await upgradeSchema(url, TABLES)
  await withQueueOwner(url, client => upgradePostgres(client))
}
