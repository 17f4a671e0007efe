// Many tokens quickly, for a bench of a store that is large already: SQL makes them as `migrate` writes them, of cards that
// nobody has. Ids grow with time; fingerprints are random.

const PAGE = 200_000

/** Statements that each make up to 200,000 tokens in this scope: those with the numbers `from + 1` to `to`. */
export function* fillStatements(scope: string, from: number, to: number): Generator<string> {
  for (let start = from; start < to; start += PAGE)
    yield `with made as (
  select ('01890000-0000-7' || lpad(to_hex(n >> 16), 3, '0') || '-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id,
    gen_random_uuid() as fp
  from generate_series(${start + 1}, ${Math.min(to, start + PAGE)}) as n
), cards as (
  insert into tokenmill.card (fp, version, token_id) select fp, 1, id from made order by fp
)
insert into tokenmill.token (token_id, token_scope, status, token_type, cards, sealed, seal_version, bin, last_four,
  expiry_month, expiry_year, card_holder_name, brand, created_at, updated_at, version)
select id, '${scope}', 'ACTIVE', 'REUSE', array[fp], decode(repeat('ab', 45), 'hex'), 1, '41111111', '1111',
  12, 2030, 'ANNA MEYER', 'VISA', now(), now(), 1 from made`
}
