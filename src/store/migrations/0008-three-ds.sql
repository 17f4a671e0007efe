-- Authentications of the 3-D Secure service.
select 1;
