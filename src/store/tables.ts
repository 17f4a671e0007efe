// What the core, or a feature, has in the database: composition.ts joins them, and the upgrade makes them.

export interface Tables {
  /** Its file in the folder of a migration, without `.sql`; a migration has those that it needs. */
  sql: string
  /** The workers' rights on each of its tables (worker-rights.ts). An empty text: none. */
  rights: Readonly<Record<string, string>>
  /** Indexes of its large tables (large-indexes.ts). */
  indexes?: readonly LargeIndex[]
}

export interface LargeIndex {
  name: string
  /** What follows `on` in `create index`. */
  on: string
}

/** Every right on rows. */
export const ALL = `select, insert,
update, delete`
