-- Claims of some kinds only.
select 1;
