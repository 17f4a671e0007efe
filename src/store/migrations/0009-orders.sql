-- Orders.
select 1;
