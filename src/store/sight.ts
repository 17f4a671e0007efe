// What somebody may see of the installation: everything, or what belongs to some entities. Every statement that the console
// shows something by takes a sight as its first argument (test/law/console.test.ts), so that none can be written without
// deciding what somebody else's rows look like: like rows that don't exist. Commands ask by the same statements.

export type Sight = { sees: 'all' } | { sees: 'entities'; entities: readonly string[] }

/** The sight of tokenmill itself, and of whoever has a shell on a host. */
export const ALL: Sight = { sees: 'all' }

/** The sight of a person with these entities; null: all. */
export function sightOf(entities: readonly string[] | null): Sight {
  return entities === null ? ALL : { sees: 'entities', entities }
}

/** The entities for a statement that holds `$n::uuid[] is null or entity_id = any($n)`: null sees every row. */
export function entitiesOf(sight: Sight): readonly string[] | null {
  return sight.sees === 'all' ? null : sight.entities
}
